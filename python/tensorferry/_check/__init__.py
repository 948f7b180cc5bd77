"""Does a tensor have the properties that the code behind relies on?"""
